package httpapi_test

// unseen are the parts of the description that no transcript has, each with its reason.
var unseen = map[string]string{
	schemas + "App/properties/awaitsOwner":                                  "only after an import without an owner",
	schemas + "DeployedApp/properties/awaitsOwner":                          "only after an import without an owner",
	schemas + "DeployedApp/properties/_links/properties/inf:app-draft-diff": "it has the links of an App",
	schemas + "DeployedApp/properties/_links/properties/inf:draft":          "it has the links of an App",
	schemas + "BundleDriver/properties/icon":                                "only drivers of hosts have it",
	schemas + "BundleDriver/properties/iconSvg":                             "only drivers of hosts have it",
	schemas + "BundleTemplate/properties/icon":                              "only drivers of hosts have it",
	schemas + "BundleTemplate/properties/iconSvg":                           "only drivers of hosts have it",
	schemas + "DomainDriver/properties/image":                               "only drivers of hosts have it",
	schemas + "Day/properties/day":                                          "views are counted when a page has been sent",
	schemas + "Day/properties/users":                                        "views are counted when a page has been sent",
	schemas + "Day/properties/views":                                        "views are counted when a page has been sent",
	schemas + "DeployResult/properties/error":                               "one tenant fails after another one did not",
	schemas + "Logout/properties/form":                                      "a provider with a form: TestLogoutByForm",
	schemas + "Restored/properties/changes":                                 "as of an import",
	schemas + "Restored/properties/unchanged":                               "as of an import",
	schemas + "Readiness/properties/warnings":                               "what an operator is to mend: internal/cli/accesslog",
	schemas + "Team/properties/avatarUrl":                                   "only users have pictures",
	restoreForm + "/properties/changes":                                     "as in the query or in JSON",
	restoreForm + "/properties/dryRun":                                      "as in the query or in JSON",
	restoreForm + "/properties/file":                                        "as of _import-bundle",
	restoreForm + "/properties/owner":                                       "as in the query or in JSON",
	restoreFileForm + "/properties/changes":                                 "as in the query or in JSON",
	restoreFileForm + "/properties/file":                                    "as of _import-bundle",
	restoreFileForm + "/properties/owner":                                   "as in the query or in JSON",
	restoreFileForm + "/properties/updateRule":                              "as in the query or in JSON",
	restoreFileForm + "/properties/uploadId":                                "as in JSON",
	"singleLogoutByQuery 200":                                               "a page after the log-out at a provider",
}

const (
	schemas         = "/components/schemas/"
	restoreForm     = "/paths/~1api~1_restore/post/requestBody/content/multipart~1form-data/schema"
	restoreFileForm = "/paths/~1api~1_restore-from-file/post/requestBody/content/multipart~1form-data/schema"
)
