/*
 * Findings about the server, for an operator.
 */
#ifndef POSTGRES_DOCTOR_H
#define POSTGRES_DOCTOR_H

#include "findings.h"
#include "postgres_impl.h"

/* Adds what is found: version, settings, standbys, clock, hosts, schema and
 * rights. */
void postgres_doctor_server(struct store *s, struct findings *f);

#endif
