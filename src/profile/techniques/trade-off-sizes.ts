/** The problems that trade-offs are measured on where none are asked for. */
export const usualSizes = { queries: 256, keys: 2048, dim: 64 } as const;
