// Nothing of its own: the program whose precompiled headers the tests share (cmake/InlayTest.cmake).
int main() {}
