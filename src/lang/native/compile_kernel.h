// compile_kernel: a kernel's source to something Executor::run takes, native code included.
//
// The one part of this layer that looks down to codegen: its own library, hologram::lang_native.
//
//   HOLOGRAM_TRY(auto add, hologram::compile_kernel(source));
//   HOLOGRAM_CHECK(executor.run(add, a, b, c, uint32_t{1024}));
#pragma once

#include <string_view>
#include <vector>

#include "lang/compile.h"
#include "runtime/kernel_function.h"
#include "support/result.h"

namespace hologram {

// The kernel named `kernel`, or the only one of the source. parse_error with all diagnostics for a
// rejected source; not_found, naming the kernels there are, for another name.
Result<runtime::KernelFunction> compile_kernel(std::string_view source,
                                               std::string_view kernel = {},
                                               std::string_view file = "<source>");

namespace lang {

// The same for a kernel that went through the front end already. Native code is for this machine.
Result<runtime::KernelFunction> make_native(const CompiledKernel& kernel);

}  // namespace lang
}  // namespace hologram
