# Toolchain for 64-bit ARM on another machine: gcc's cross compiler, tests run by qemu (QEMU_CPU in the environment: the processor that it
# emulates). `make test-arm` uses it. HUNCH_SYSROOT: a folder with the libraries for that machine, unpacked from their Debian packages (make
# deps-arm).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HUNCH_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${HUNCH_SYSROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY BOTH) # pkg-config's paths are in the sysroot already
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HUNCH_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${HUNCH_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
