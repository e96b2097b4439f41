/* main.c: a user's program, built by install_test.sh against the installed tree. */
#include <stdio.h>
#include <tiletape.h>

int main(void) {
    const char *text = tile_last_error();
    printf("last error: %s\n", text);
    return text == NULL;
}
