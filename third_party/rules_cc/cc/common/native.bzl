"""A file cannot load and define one name, hence the second name."""

NativeCcInfo = CcInfo
