// Nothing: gives the precompiled headers of headers.h a target.
