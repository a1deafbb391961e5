// A hostile size is refused by the allocator, as it is without the sanitizer, and not an alarm.
#pragma once

extern "C" __attribute__((visibility("default"), used)) const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=128:detect_leaks=0";
}
