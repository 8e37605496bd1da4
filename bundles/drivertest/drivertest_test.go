package drivertest_test

import "testing"

// TestExample runs the checks of the example.
func TestExample(t *testing.T) { checkRecipes(t) }
