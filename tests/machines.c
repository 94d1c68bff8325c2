#include "machines.h"

#include <stdio.h>
#include <stdlib.h>

#include "plan/caps_text.h"
#include "support.h"

char *machine_file(const char *name, const char *ending) {
    enum { MOST = 1 << 20 };
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s%s", TEST_MACHINES, name, ending);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, MOST);
    if (!EXPECT_THAT(file && text, "cannot read %s", path)) {
        if (file)
            (void)fclose(file);
        free(text);
        return NULL;
    }
    const size_t size = fread(text, 1, MOST - 1, file);
    (void)fclose(file);
    EXPECT_THAT(size < MOST - 1, "%s is too long", path);
    return text;
}

int machine_load(const char *name, dpr_machine *out) {
    char *text = machine_file(name, ".caps");
    if (!text)
        return 0;
    *out = (dpr_machine){.resident = NULL};
    const int good = EXPECT_STATUS(DPR_OK, dpr_caps_parse(text, &out->caps));
    free(text);
    return good;
}
