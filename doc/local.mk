# SPDX-License-Identifier: BSD-3-Clause
# Manual pages and other documents.
dist_man_MANS += doc/nezha.7 doc/nezha-aggd.1 doc/nezha-info.1 doc/nezha-table.5 doc/nezha-tune.1
dist_doc_DATA += doc/table-example.json doc/nezha-aggd.service
EXTRA_DIST += doc/design.md doc/figures.md doc/results.md doc/results.json doc/results
