// Frames that a test knows: captured_inlined() is inlined into exported_caller(), which calls back.
// The line numbers below are part of the test: LINE_OF_CALL and LINE_OF_INLINED_CALL say them.
namespace shapes {

template <typename T>
__attribute__((always_inline)) inline int captured_inlined(int (*callback)(), T value) {
  return callback() + static_cast<int>(value);  // LINE_OF_CALL
}

// Not exported: in .symtab, not in .dynsym.
__attribute__((noinline, visibility("hidden"))) int hidden_caller(int (*callback)(), int value) {
  const int result = callback() + value;  // LINE_OF_HIDDEN_CALL
  asm volatile("" ::: "memory");
  return result;
}

struct Square {
  __attribute__((noinline)) static int exported_caller(int (*callback)(), int value);
};

int Square::exported_caller(int (*callback)(), int value) {
  const int result = captured_inlined(callback, value * 2.5);  // LINE_OF_INLINED_CALL
  asm volatile("" ::: "memory");
  return result;
}

}  // namespace shapes

extern "C" int call_inlined(int (*callback)()) {
  return shapes::Square::exported_caller(callback, 1) + 1;
}
extern "C" int call_hidden(int (*callback)()) {
  return shapes::hidden_caller(callback, 2) + 1;
}
