module github.com/pintle/pintle/clients/go

go 1.20

require go.yaml.in/yaml/v2 v2.4.4
