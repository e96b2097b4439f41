/* sanitizer_options.cc: a huge allocation returns NULL under the sanitizers too. */
extern "C" const char *__asan_default_options();
extern "C" const char *__tsan_default_options();

extern "C" const char *__asan_default_options() {
    return "allocator_may_return_null=1";
}

extern "C" const char *__tsan_default_options() {
    return "allocator_may_return_null=1";
}
