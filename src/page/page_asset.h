/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The page as one file, made at build time from page.html, page.css and page.js by assemble.py. */

#include <stddef.h>

extern const char page_asset_html[];
extern const size_t page_asset_html_size;
extern const char page_asset_icon[]; /* SVG */
extern const size_t page_asset_icon_size;
/* The Content-Security-Policy that allows just this page's script and style. */
extern const char page_asset_policy[];
