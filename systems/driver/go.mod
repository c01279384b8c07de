module assay.dev/assay/systems/driver

go 1.26.0
