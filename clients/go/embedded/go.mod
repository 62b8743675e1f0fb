module github.com/pintle/pintle/clients/go/embedded

go 1.20

require github.com/pintle/pintle/clients/go v0.1.0

replace github.com/pintle/pintle/clients/go => ../
