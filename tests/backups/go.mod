module pintle.test/backups

go 1.26.0

require (
	filippo.io/age v1.3.2
	github.com/rclone/gofakes3 v0.0.12
)

require (
	filippo.io/hpke v0.4.0 // indirect
	github.com/minio/xxml v0.0.3 // indirect
	github.com/ryszard/goskiplist v0.0.0-20150312221310-2dfbae5fcf46 // indirect
	github.com/shabbyrobe/gocovmerge v0.0.0-20230507112040-c3350d9342df // indirect
	golang.org/x/crypto v0.55.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/tools v0.49.0 // indirect
)
