# `cmake --build build --target package`: a .deb, whose dependencies are those of its libraries, and a tarball
# (docs/how-to/install.md).
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME pipesim)
set(CPACK_PACKAGE_VENDOR pipesim)
set(CPACK_PACKAGE_CONTACT "pipesim maintainers <pipesim@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Run where they are there: figures, proofs, pipelines that compute.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3-matplotlib)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "coinor-cbc, libopenblas0, openmpi-bin")
include(CPack)
