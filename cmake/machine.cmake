# Supported machines, checked when configuring, as others would get wrong results. Weights are read in the file's byte
# order (little-endian), whole files are mapped, and work is claimed by 64-bit words.
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  math(EXPR bits "${CMAKE_SIZEOF_VOID_P} * 8")
  message(FATAL_ERROR "hunch needs a 64-bit machine (model files are mapped whole): this compiler makes ${bits}-bit code.")
endif()
if(CMAKE_C_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "hunch needs a little-endian machine (it reads weights as the file has them): this compiler makes "
                      "big-endian code.")
endif()
