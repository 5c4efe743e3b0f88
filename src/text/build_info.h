/* SPDX-License-Identifier: Apache-2.0 */
/* build_info.h - version, compiler and libraries of this build, for bug reports. No time and no path, so that builds are
 * reproducible. It is in this folder because the libraries that it names are used here. */
#ifndef HN_BUILD_INFO_H
#define HN_BUILD_INFO_H
#include "base/status.h"

hunch_build_info hn_build_info(void);
#endif
