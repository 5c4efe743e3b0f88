/* SPDX-License-Identifier: Apache-2.0 */
/* build_info.h - what was built, and with what: for reports of faults. Nothing of when and where, so that a build can be
 * repeated to the byte. It stands here because the libraries that it names are used here. */
#ifndef HN_BUILD_INFO_H
#define HN_BUILD_INFO_H
#include "base/status.h"

hunch_build_info hn_build_info(void);
#endif
