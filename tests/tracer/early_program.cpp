// Exits with 0 where early_library.cpp got its memory before main.
extern "C" int early_has_memory();

int main() {
  return early_has_memory() == 1 ? 0 : 1;
}
