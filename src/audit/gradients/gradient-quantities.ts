import type { Quantity } from '../../problem/index.js';

/** Properties that all gradients have in common. */
const gradient = { row: 'vector', magnitude: 'its terms', isExpected: false } as const;

const dq = {
  ...gradient,
  name: 'dq',
  axes: ['batch', 'heads', 'queries', 'qkDim'],
  prose: 'dQ',
  label: 'dQ',
  parts: 'elements of dQ',
  unit: 'units of dQ',
  option: 'dq',
} as const satisfies Quantity;

const dk = {
  ...gradient,
  name: 'dk',
  axes: ['batch', 'kvHeads', 'keys', 'qkDim'],
  prose: 'dK',
  label: 'dK',
  parts: 'elements of dK',
  unit: 'units of dK',
  option: 'dk',
} as const satisfies Quantity;

const dv = {
  ...gradient,
  name: 'dv',
  axes: ['batch', 'kvHeads', 'keys', 'vDim'],
  prose: 'dV',
  label: 'dV',
  parts: 'elements of dV',
  unit: 'units of dV',
  option: 'dv',
} as const satisfies Quantity;

/**
 * The gradient of the bias, in its own shape, with leading sizes of 1: see `sharedShape`. Its rows are those of each query, or one for
 * all queries together where it is broadcast to them.
 */
const dbias = {
  ...gradient,
  name: 'dbias',
  axes: ['batch', 'heads', 'queries', 'keys'],
  prose: 'dBias',
  label: 'dBias',
  parts: 'elements of dBias',
  unit: 'units of dBias',
  option: 'dbias',
} as const satisfies Quantity;

/** The gradient of the sinks: a number for each head, summed over the batch. */
const dsink = {
  ...gradient,
  name: 'dsink',
  axes: ['batch', 'heads', 'queries'],
  row: 'number',
  prose: 'dSink',
  label: 'dSink',
  parts: 'elements of dSink',
  unit: 'units of dSink',
  option: 'dsink',
} as const satisfies Quantity;

/**
 * The gradients of Q, K and V, in the order in which reports tell of them. Errors relative to a gradient's magnitude
 * are relative to the sum of the sizes of each element's terms (`Gradient.magnitude` of the oracle).
 */
export const gradientQuantities = [dq, dk, dv] as const satisfies readonly Quantity[];

/** The gradients that all heads add to: of the bias and of the sinks. */
export const sharedQuantities = [dbias, dsink] as const satisfies readonly Quantity[];

/** All gradients that are judged, in the order in which reports tell of them. */
export const judgedGradients = [
  ...gradientQuantities,
  ...sharedQuantities,
] as const satisfies readonly Quantity[];

/** The name of one of {@link sharedQuantities}. */
export type SharedGradientName = (typeof sharedQuantities)[number]['name'];

/** The name of one of {@link gradientQuantities}. */
export type GradientQuantityName = (typeof gradientQuantities)[number]['name'];

/** The name of one of {@link judgedGradients}. */
export type JudgedGradientName = GradientQuantityName | SharedGradientName;

/** A value for each of the gradients of Q, K and V, by name. */
export type ByGradient<T> = Readonly<Record<GradientQuantityName, T>>;

/** dO, the gradient of the output, which the others are made from. */
export const outputGradient = {
  ...gradient,
  name: 'dout',
  axes: ['batch', 'heads', 'queries', 'vDim'],
  prose: 'dO',
  label: 'dO',
  parts: 'elements of dO',
  unit: 'units of dO',
  option: 'dout',
} as const satisfies Quantity;

/** Makes a value for each of the gradients of Q, K and V, one after the other. */
export function byGradient<T>(make: (quantity: (typeof gradientQuantities)[number]) => T) {
  const made = gradientQuantities.map((quantity) => [quantity.name, make(quantity)] as const);
  return Object.fromEntries(made) as ByGradient<T>;
}
