/** The kinds of numeric parameters, by the names of PTX types. */
export type ScalarKind = `${'s' | 'u'}${8 | 16 | 32 | 64}` | 'f16' | 'bf16' | 'f32' | 'f64';

const scalarKinds: readonly ScalarKind[] = [
  ...(['s8', 'u8', 's16', 'u16', 's32', 'u32', 's64', 'u64'] as const),
  ...(['f16', 'bf16', 'f32', 'f64'] as const),
];

const amount = { type: ['number', 'string'] };
const name = { type: 'string', minLength: 1, maxLength: 1000 };
const sizes = { type: 'array', items: amount, minItems: 1, maxItems: 3 };
const perDimension = { type: 'array', items: amount, maxItems: 5 };

/** The schema of a launch file, but for its parameters. */
export const fileSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['entry', 'grid', 'parameters', 'outputs'],
  properties: {
    ptx: name,
    tensors: name,
    entry: name,
    grid: sizes,
    block: sizes,
    cluster: sizes,
    dynamicSharedBytes: amount,
    parameters: { type: 'array', items: { type: 'object' }, maxItems: 4096 },
    formats: { type: 'array', items: name, minItems: 1, maxItems: 100 },
    requires: { type: 'array', items: name, maxItems: 100 },
    next: name,
    contract: { type: 'object' },
    buffers: {
      type: 'array',
      maxItems: 1000,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['name', 'format', 'shape'],
        properties: {
          name,
          format: name,
          shape: { type: 'array', items: amount, maxItems: 8 },
          zeros: { type: 'boolean' },
        },
      },
    },
    outputs: {
      type: 'array',
      maxItems: 1000,
      items: {
        type: ['string', 'object'],
        additionalProperties: false,
        required: ['name'],
        properties: { name, as: name, format: name },
      },
    },
  },
};

const whole = { type: 'integer', minimum: 0 };
/** The schema of a view of a flat buffer. */
const viewSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['tensor', 'shape'],
  properties: {
    tensor: name,
    shape: { type: 'array', items: whole, minItems: 1, maxItems: 8 },
    strides: { type: 'array', items: whole, maxItems: 8 },
    offset: whole,
    format: name,
  },
};

/** The schema of a contract whose kind and members are known. */
export const contractSchema = {
  type: 'object',
  required: ['kind', 'q'],
  properties: {
    kind: name,
    scale: { type: 'number' },
    causal: { type: 'boolean' },
    window: {
      type: 'array',
      items: { type: 'integer', minimum: -1 },
      minItems: 2,
      maxItems: 2,
    },
    softcap: { type: 'number', minimum: 0 },
    prefix: whole,
    dropout_p: { type: 'number', minimum: 0, exclusiveMaximum: 1 },
    block_q: { type: 'integer', minimum: 1 },
    block_k: { type: 'integer', minimum: 1 },
    block_size: { type: 'integer', minimum: 1 },
    kv_index_of: { type: 'string', enum: ['positions', 'slots'] },
    v_dim: { type: 'integer', minimum: 1 },
    lse_sink: { type: 'boolean' },
    kv_layout: { type: 'string', enum: ['NHD', 'HND'] },
  },
  patternProperties: {
    '^[qkv]_descale_block$': { type: 'integer', minimum: 1 },
    // A number, or a tensor of factors.
    '^[qkv]_(descale|global_scale)$': {
      ...viewSchema,
      type: ['object', 'number'],
      exclusiveMinimum: 0,
    },
  },
  additionalProperties: viewSchema,
};

/** The schema of a contract of a recurrence, whose kind and members are known. */
export const recurrentContractSchema = {
  type: 'object',
  required: ['kind', 'family', 'q', 'k', 'v'],
  properties: {
    kind: name,
    family: name,
    scale: { type: 'number' },
    qk_norm_epsilon: { type: 'number', exclusiveMinimum: 0 },
    gate_base: { enum: [2] },
  },
  additionalProperties: viewSchema,
};

/** The schema of a parameter of each kind, by the member that names the kind. */
export const parameterSchemas: Readonly<Record<string, object>> = {
  tensor: {
    type: 'object',
    additionalProperties: false,
    properties: { tensor: name, byteOffset: amount },
  },
  scratch: { type: 'object', additionalProperties: false, properties: { scratch: amount } },
  struct: {
    type: 'object',
    additionalProperties: false,
    properties: { struct: { type: 'array', items: { type: 'object' }, maxItems: 4096 } },
  },
  tensorMap: {
    type: 'object',
    additionalProperties: false,
    properties: {
      tensorMap: {
        type: 'object',
        additionalProperties: false,
        required: ['tensor', 'elementType', 'globalDim', 'globalStrides', 'boxDim'],
        properties: {
          tensor: name,
          byteOffset: amount,
          elementType: name,
          globalDim: perDimension,
          globalStrides: perDimension,
          boxDim: perDimension,
          elementStrides: perDimension,
          interleave: name,
          swizzle: name,
          l2Promotion: name,
          oobFill: name,
        },
      },
    },
  },
  encodedTensorMap: {
    type: 'object',
    additionalProperties: false,
    properties: {
      encodedTensorMap: {
        type: 'object',
        additionalProperties: false,
        required: ['tensor', 'bytes'],
        properties: {
          tensor: name,
          byteOffset: amount,
          bytes: { type: 'string', pattern: '^[0-9a-fA-F]{256}$' },
        },
      },
    },
  },
  ...Object.fromEntries(
    scalarKinds.map((kind) => [
      kind,
      { type: 'object', additionalProperties: false, properties: { [kind]: amount } },
    ]),
  ),
};

/** The members that name the kind of a parameter. */
export const parameterKinds = Object.keys(parameterSchemas);
