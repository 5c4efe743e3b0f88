# Toolchain for musl instead of this system's C library, fully static: one file that runs on any Linux of the same processor family. `make
# musl` uses it. HUNCH_SYSROOT: a folder with the libraries, made by scripts/sysroot-musl.sh.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR "") # programs run on this machine
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HUNCH_SYSROOT)
set(CMAKE_C_FLAGS_INIT "-isystem ${HUNCH_SYSROOT}/include") # the kernel's headers
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -L${HUNCH_SYSROOT}/lib")
set(HUNCH_SHARED OFF) # libhunch.so would need musl's libc.so
set(ENV{PKG_CONFIG_LIBDIR} ${HUNCH_SYSROOT}/lib/pkgconfig)
