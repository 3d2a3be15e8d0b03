"""inlay_tests: one cc_test per *_test.cc of a tests folder and of the folders in it."""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")

def inlay_tests(deps, data = [], exclude = []):
    """Defines the tests of a folder.

    Args:
      deps: the libraries under test.
      data: files that the tests open, by their path from the repository's root.
      exclude: tests that only CMake builds.
    """
    cc_library(
        name = "support",
        testonly = True,
        srcs = native.glob(["**/*.cc"], exclude = ["**/*_test.cc"]),
        hdrs = native.glob(["**/*.h"]),
        visibility = ["//tests:__subpackages__"],
        deps = deps + ["//tests:support", "@inlay_deps//:gtest_main"],
    )
    for source in native.glob(["**/*_test.cc"], exclude = exclude):
        cc_test(
            name = source[:-len(".cc")],
            size = "medium",
            srcs = [source],
            data = data,
            deps = deps + [":support", "@inlay_deps//:gtest_main"],
        )
