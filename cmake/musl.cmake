# For musl instead of this system's C library, all of it static: one file that runs on any Linux of the same processor family.
# `make musl` uses it. HUNCH_SYSROOT: a folder with the libraries, as scripts/sysroot-musl.sh makes it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR "") # what is built runs here
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HUNCH_SYSROOT)
set(CMAKE_C_FLAGS_INIT "-isystem ${HUNCH_SYSROOT}/include") # of the kernel's headers
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -L${HUNCH_SYSROOT}/lib")
set(HUNCH_SHARED OFF) # libhunch.so would need a libc.so of musl's
set(ENV{PKG_CONFIG_LIBDIR} ${HUNCH_SYSROOT}/lib/pkgconfig)
