// Included right after HWY_BEFORE_NAMESPACE, once a level, so it has no guard: the oldest level has
// to be there, not to be unrolled. HWY_AFTER_NAMESPACE ends what is set here.
#if HWY_TARGET == HWY_SSE4 && HWY_COMPILER_GCC_ACTUAL && defined(__OPTIMIZE__)
#pragma GCC optimize("Os")
#endif
