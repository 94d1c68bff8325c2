/* A build without CUDA launches nothing. */
#include "cli.h"
#include "nested.h"

int nested_part_main(int argc, char **argv) {
    (void)argc, (void)argv;
    return cli_error("this build of dpr has no CUDA");
}
