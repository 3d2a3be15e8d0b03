// The program whose precompiled headers the tests share (cmake/InlayTest.cmake).
int main() {}
