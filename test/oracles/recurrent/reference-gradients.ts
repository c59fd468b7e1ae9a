import { decodeTensor } from '../../../src/formats/index.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  Tensor,
} from '../../../src/problem/index.js';
import type { Arena, Real } from '../mpfr.js';
import { referenceRecurrence, type Arithmetic } from './reference-recurrence.js';

/** A number that remembers what it was made of, and the derivatives by that. */
export interface Node {
  readonly value: Real;
  readonly parents: readonly (readonly [node: Node, derivative: Real])[];
  gradient: Real;
}

/** Arithmetic of MPFR that keeps every number it makes, in their order. */
export function recorded(
  arena: Arena,
  nodes: Node[],
): Arithmetic<Node> & { readonly log: (a: Node) => Node } {
  const zero = arena.of(0);
  const one = arena.of(1);
  const minusOne = arena.of(-1);
  const node = (value: Real, ...parents: Node['parents']): Node => {
    const made = { value, parents, gradient: zero };
    nodes.push(made);
    return made;
  };
  return {
    of: (x) => node(arena.of(x)),
    add: (a, b) => node(arena.add(a.value, b.value), [a, one], [b, one]),
    subtract: (a, b) => node(arena.subtract(a.value, b.value), [a, one], [b, minusOne]),
    multiply: (a, b) => node(arena.multiply(a.value, b.value), [a, b.value], [b, a.value]),
    divide: (a, b) => {
      const quotient = arena.divide(a.value, b.value);
      const byDivisor = arena.multiply(minusOne, arena.divide(quotient, b.value));
      return node(quotient, [a, arena.divide(one, b.value)], [b, byDivisor]);
    },
    squareRoot: (a) => {
      const root = arena.squareRoot(a.value);
      return node(root, [a, arena.divide(one, arena.add(root, root))]);
    },
    exp: (a) => {
      const power = arena.exp(a.value);
      return node(power, [a, power]);
    },
    log: (a) => node(arena.log(a.value), [a, arena.divide(one, a.value)]),
  };
}

/** The gradients of a problem by the oracle's names; undefined where it has none. */
export type ReferenceGradients = Readonly<
  Record<'dq' | 'dk' | 'dv' | 'dg' | 'dbeta' | 'dinitial_state', readonly Real[] | undefined>
>;

/** Gradients of ⟨dO, O⟩ + ⟨dS_T, S_T⟩ by automatic differentiation of the definition: no law of gradients is written here. */
export function referenceGradients(
  problem: RecurrentProblem,
  { dout, dfinalState }: RecurrentGradientInputs,
  arena: Arena,
): ReferenceGradients {
  const nodes: Node[] = [];
  const { out, finalState, inputs } = referenceRecurrence(problem, recorded(arena, nodes));
  differentiate({ nodes, out, finalState }, { dout, dfinalState }, arena);
  const gradients = (of: readonly Node[] | undefined) => of?.map(({ gradient }) => gradient);
  return {
    dq: gradients(inputs.q),
    dk: gradients(inputs.k),
    dv: gradients(inputs.v),
    dg: gradients(inputs.g),
    dbeta: gradients(inputs.beta),
    dinitial_state: gradients(inputs.initialState),
  };
}

/** Gives each node its gradient of ⟨dO, O⟩ + ⟨dS_T, S_T⟩. */
export function differentiate(
  {
    nodes,
    out,
    finalState,
  }: Readonly<Record<'out' | 'finalState', readonly Node[]>> & { readonly nodes: readonly Node[] },
  { dout, dfinalState }: RecurrentGradientInputs,
  arena: Arena,
): void {
  const seed = (of: readonly Node[], tensor: Tensor) => {
    decodeTensor(tensor).forEach((x, i) => {
      of[i].gradient = arena.add(of[i].gradient, arena.of(x));
    });
  };
  seed(out, dout);
  if (dfinalState) seed(finalState, dfinalState);
  for (const { gradient, parents } of [...nodes].reverse())
    for (const [parent, derivative] of parents)
      parent.gradient = arena.add(parent.gradient, arena.multiply(gradient, derivative));
}
