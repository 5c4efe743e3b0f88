# The machines that hunch is written for: it says so before anything is built, not by a result that is wrong.
# Weights are read as the file has them (little-endian), files are mapped whole, and claims of work are 64-bit words.
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  math(EXPR bits "${CMAKE_SIZEOF_VOID_P} * 8")
  message(FATAL_ERROR "hunch needs a 64-bit machine (model files are mapped whole): this compiler makes ${bits}-bit code.")
endif()
if(CMAKE_C_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "hunch needs a little-endian machine (it reads weights as the file has them): this compiler makes "
                      "big-endian code.")
endif()
