/*
 * Accepted requests: stored with their keys, answered with 202, and run here.
 */
#ifndef RUNNER_H
#define RUNNER_H

#include "work.h"

/* Its self is the struct store. */
extern const struct work_kind runner_kind;

#endif
