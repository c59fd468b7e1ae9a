/** An fp32 number from its bits, as PTX writes its constants. */
export function fp32Of(bits: number): number {
  return new Float32Array(Uint32Array.of(bits).buffer)[0];
}
