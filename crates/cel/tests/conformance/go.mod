// Pins the conformance data. There is no Go code here.
module conformance

go 1.23

require cel.dev/expr v0.25.3
