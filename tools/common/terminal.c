#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

int terminal_columns(FILE *f) {
    struct winsize size = {0};
    const int is_known = ioctl(fileno(f), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known ? size.ws_col : 80;
}

int terminal_has_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *value = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && (!value || !*value); i++)
        value = getenv(names[i]);
    const char *charset = value ? strchr(value, '.') : NULL;
    return charset && (strncasecmp(charset, ".utf-8", 6) == 0 || strncasecmp(charset, ".utf8", 5) == 0);
}
