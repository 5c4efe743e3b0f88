# For 64-bit ARM from another machine: gcc's cross compiler, tests run by qemu. `make test-arm` uses it (scripts/test-arm.sh).
# HUNCH_SYSROOT: a folder with the libraries for that machine, as their Debian packages unpack (make deps-arm).
# HUNCH_QEMU_CPU: the processor that qemu plays: max, neoverse-n1 (no i8mm), cortex-a72 (no dotprod) ...
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HUNCH_SYSROOT HUNCH_QEMU_CPU)
if(NOT HUNCH_QEMU_CPU)
  set(HUNCH_QEMU_CPU max)
endif()
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu ${HUNCH_QEMU_CPU})
set(CMAKE_FIND_ROOT_PATH ${HUNCH_SYSROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY BOTH) # pkg-config's answers name the sysroot already
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HUNCH_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${HUNCH_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
