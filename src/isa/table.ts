import { extremumRows } from './extrema.js';
import { float32Quotients } from './float32/quotients.js';
import { float32Signs } from './float32/signs.js';
import { float32Sums } from './float32/sums.js';
import type { Row } from './row.js';
import { specialFunctionRows } from './special-functions.js';

/** The rows of all instructions on registers of a lane. */
export const laneRows: readonly Row[] = [
  ...float32Sums,
  ...extremumRows,
  ...float32Signs,
  ...specialFunctionRows,
  ...float32Quotients,
];
