package binary

// Version is the version of this module, which is that of its binary.
const Version = "0.1.0"
