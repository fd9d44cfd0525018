/*
 * What a program printed when its answer was not accepted, for oncectl show
 * --output.
 */
#ifndef ONCECTL_OUTPUT_H
#define ONCECTL_OUTPUT_H

#include "oncectl.h"

/* Prints it, and how the program ended.  Returns the exit status. */
int oncectl_output_print(struct oncectl *ctl, const struct record *row);

#endif
