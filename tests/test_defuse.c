/* Text from outside: what terminals obey is shown as '?', and escaped in JSON. */
#include <stdio.h>
#include <stdlib.h>

#include "cli_json.h"
#include "defuse.h"
#include "support.h"
#include "value.h"

static void check_defused(const char *text, const char *wanted) {
    char in_place[64];
    snprintf(in_place, sizeof in_place, "%s", text);
    defuse(in_place);
    EXPECT_EQ_STR(wanted, in_place);
}

TEST(Defuse, harmless_text_stays) {
    check_defused("", "");
    check_defused("plain ~!", "plain ~!");
    check_defused(
        "\xC2\xA0\xC3\xA9\xD8\x9B\xD8\x9D\xE2\x80\x8D\xE2\x80\x90\xE2\x80\xA7\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA",
        "\xC2\xA0\xC3\xA9\xD8\x9B\xD8\x9D\xE2\x80\x8D\xE2\x80\x90\xE2\x80\xA7\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA");
    check_defused("\xEC\x9C\xA0\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF", "\xEC\x9C\xA0\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF");
}

TEST(Defuse, every_control_character) {
    for (unsigned c = 1; c < 0x20; c++)
        check_defused((const char[]){'a', (char)c, 'b', 0}, "a?b");
    check_defused("a\x7F"
                  "b",
                  "a?b");
    for (unsigned c = 0x80; c < 0xA0; c++)
        check_defused((const char[]){'a', (char)0xC2, (char)c, 'b', 0}, "a?b");
}

TEST(Defuse, directions_and_line_ends) {
    check_defused("a\xD8\x9C", "a?");
    for (unsigned c = 0x200E; c <= 0x2069; c++) {
        const char character[] = {'<', (char)0xE2, (char)(0x80 | (c >> 6 & 0x3F)), (char)(0x80 | (c & 0x3F)), 0};
        if (c <= 0x200F || (c >= 0x2028 && c <= 0x202E) || c >= 0x2066)
            check_defused(character, "<?");
        else
            check_defused(character, character);
    }
}

TEST(Defuse, bytes_that_are_no_utf8) {
    check_defused("\x9B"
                  "31m",
                  "?31m");
    check_defused("\x80\xBF\xC0\xC1\xF5\xFF", "??????");
    check_defused("\xC0\x9B", "??");           /* an overlong form */
    check_defused("\xE0\x80\x9B", "???");      /* another */
    check_defused("\xED\xA0\x80", "???");      /* a surrogate */
    check_defused("\xF4\x90\x80\x80", "????"); /* past U+10FFFF */
    check_defused("\xE2\x80", "??");           /* cut off */
    check_defused("\xC3\x28\xC3\xA9", "?(\xC3\xA9");
}

TEST(Defuse, characters_are_counted_and_numbered) {
    uint32_t character = 0;
    EXPECT_EQ_U64(4, utf8_next("\xF0\x9F\x98\x80", &character));
    EXPECT_EQ_U64(0x1F600, character);
    EXPECT_EQ_U64(3, utf8_next((const char[]){'\xE2', '\x80', '\xAE', 'x', 0}, &character));
    EXPECT_EQ_U64(0x202E, character);
    EXPECT_EQ_U64(1, utf8_next("\xE2\x80", &character));
    EXPECT_EQ_U64(UTF8_NONE, character);
}

/* A string as JSON. */
static void check_json(const char *text, const char *wanted) {
    char *json = cli_json_take(cJSON_CreateString(text)), *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);
    ASSERT_TRUE(json != NULL && f != NULL);
    cli_json_put(f, json);
    (void)fclose(f);
    EXPECT_EQ_STR(wanted, out);
    free(out);
    cJSON_free(json);
}

TEST(Json, strings_keep_what_they_hold_without_hurting_terminals) {
    check_json("a\"\\\n\x1B", "\"a\\\"\\\\\\n\\u001b\"");
    check_json((const char[]){'\x7F', '\xC2', '\x9B', '\xE2', '\x80', '\xAE', '\xE2', '\x80', '\xA8', 'x', 0},
               "\"\\u007f\\u009b\\u202e\\u2028x\"");
    check_json("\x9B"
               "1m\xE2\x80",
               "\"\xEF\xBF\xBD"
               "1m\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Json, minus_zero_has_a_point) {
    static const char *const digits[][2] = {{"-0", "-0.0"}, {"0", "0"}, {"-0.5", "-0.5"}, {"-1", "-1"}};
    for (size_t i = 0; i < LENGTH(digits); i++) {
        char *json = cli_json_take(cli_json_digits(digits[i][0]));
        EXPECT_EQ_STR(digits[i][1], json);
        cJSON_free(json);
    }
    const value v = {.c128 = {-0.0, -0.0}};
    char *json = cli_json_take(value_json(DPR_C128, &v));
    EXPECT_EQ_STR("[-0.0,-0.0]", json);
    cJSON_free(json);
}
