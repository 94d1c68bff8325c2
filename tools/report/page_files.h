/* The style sheets and the script of pages, which the build puts into page_files.c. Each ends with a zero. */
#ifndef DPR_TOOLS_PAGE_FILES_H
#define DPR_TOOLS_PAGE_FILES_H

extern const char page_css[]; /* page.css */
extern const char plot_css[]; /* plot.css */
extern const char page_js[];  /* page.js */

/* The SHA-256 of page.js. A page names it in its content security policy, so that browsers run no other script. */
extern const unsigned char page_js_sha256[32];

#endif
