/** A dump that the audit page offers: by its id in the address, and as the file examples/<id>.safetensors of the site. */
export interface Example {
  readonly id: string;
  /** What is on its button. */
  readonly title: string;
  /** What it is, a sentence. */
  readonly text: string;
}

/** The dumps that the audit page offers, in their order; site/example-dumps.ts makes their files. */
export const examples = [
  {
    id: 'cudnn',
    title: 'cuDNN',
    text: 'What cuDNN wrote on an H200: 200 queries, 300 keys, bf16.',
  },
  {
    id: 'one-key-too-many',
    title: 'One key too many',
    text: 'FlashAttention-4, emulated, with a causal mask that is one key off.',
  },
  {
    id: 'no-tail-mask',
    title: 'No tail mask',
    text: 'FlashAttention-4, emulated, with zeros behind the last key that count as keys.',
  },
  {
    id: 'gradients',
    title: 'Gradients',
    text: 'FlashAttention-2 on an H200: O, dQ, dK and dV.',
  },
  {
    id: 'splits',
    title: 'Splits',
    text: 'A paged decode kernel on an H200: its O and LSE, and those of each split of the keys.',
  },
] as const satisfies readonly Example[];

/** The id of one of them. */
export type ExampleId = (typeof examples)[number]['id'];

/** The example that an address names after its #, or null. */
export function exampleOf(hash: string): (typeof examples)[number] | null {
  const id = new URLSearchParams(hash.replace(/^#/, '')).get('example');
  return examples.find((example) => example.id === id) ?? null;
}
