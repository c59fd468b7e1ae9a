/** The real function that an operation rounds, by name; its operands are in the order of the instruction. */
export type RealFunction =
  | 'add'
  | 'subtract'
  | 'multiply'
  /** a·b + c. */
  | 'fma'
  | 'divide'
  | 'reciprocal'
  | 'square-root'
  | 'reciprocal-square-root'
  | 'exp2'
  | 'log2'
  | 'sine'
  | 'cosine'
  | 'tanh'
  | 'absolute'
  | 'negate'
  /** |a| with the sign of b. */
  | 'copysign'
  | 'identity'
  | 'larger-magnitude'
  | 'smaller-magnitude';

/** What becomes of a result before it is rounded: it is cut to [0, 1], or to what is not negative. */
export type Limit = 'saturate' | 'positive' | null;
