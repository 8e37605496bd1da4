//go:build !unix

package keyring

import "os"

func syncFolder(string) error { return nil }

func keepOwner(*os.File, string) error { return nil }
