// FunctionRef: a borrowed callable; two words, never allocates. Must not outlive what it refers to.
// A plain function may be given as well, by name or by pointer.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace hologram {

template <typename Signature>
class FunctionRef;

template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           !std::is_pointer_v<std::decay_t<F>> && std::is_invocable_r_v<R, F&, Args...>)
      FunctionRef(F&& callable)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  FunctionRef(R (*function)(Args...))
      : object_(reinterpret_cast<void*>(function)), call_([](void* object, Args... args) -> R {
          return reinterpret_cast<R (*)(Args...)>(object)(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace hologram
