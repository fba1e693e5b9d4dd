/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The scripts beside this file, as text. */

extern const char completion_bash[];
extern const char completion_zsh[];
extern const char completion_fish[];
