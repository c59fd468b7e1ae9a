/**
 * Files written by the reference tools, as base64. The npy and npz files are those of numpy 2.4.6,
 * with the types of ml_dtypes 0.6.0; the safetensors file is that of the Python package safetensors
 * 0.8.0. Each comment is the call that made it.
 */

function file(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, 'base64'));
}

export const numpyFiles = {
  // np.save(f, np.array([[0, -0.0, 1.5], [np.inf, np.nan, -2.0**-24]], '<f2'))
  half: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPGYyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAACAAD4AfAB+AYA=',
  ),
  // np.save(f, np.asfortranarray(np.arange(12).reshape(2, 3, 2).astype('>f4')))
  singleBigEndianFortran: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPmY0JywgJ2ZvcnRyYW5fb3JkZXInOiBUcnVlLCAnc2hhcGUnOiAoMiwgMywgMiksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAQMAAAEAAAABBAAAAQIAAAEEgAAA/gAAAQOAAAEBAAABBEAAAQKAAAEEwAAA=',
  ),
  // np.save(f, np.array(-1.25))
  doubleScalar: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPGY4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAAD0vw==',
  ),
  // np.save(f, np.zeros((0, 3)))
  doubleEmpty: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPGY4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDAsIDMpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAo=',
  ),
  // np.lib.format.write_array(f, np.array([1, 2, 3], '<f4'), version=(2, 0))
  singleVersion2: file(
    'k05VTVBZAgB0AAAAeydkZXNjcic6ICc8ZjQnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMywpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAIA/AAAAQAAAQEA=',
  ),
  // np.lib.format.write_array(f, np.array([1, 2, 3], '<f4'), version=(3, 0))
  singleVersion3: file(
    'k05VTVBZAwB0AAAAeydkZXNjcic6ICc8ZjQnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMywpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAIA/AAAAQAAAQEA=',
  ),
  // np.save(f, np.array([1, -2, 0.5, np.inf], ml_dtypes.bfloat16))
  bfloat16: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPFYyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDQsKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAqAPwDAAD+Afw==',
  ),
  // np.save(f, np.array([1, -2, 448, np.nan], ml_dtypes.float8_e4m3fn))
  float8E4m3fn: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPFYxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDQsKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAo4wH5/',
  ),
  // np.save(f, np.array([1, -2, 57344, np.inf], ml_dtypes.float8_e5m2))
  float8E5m2: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPGYxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDQsKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAo8wHt8',
  ),
  // np.save(f, np.array([1, 2.5, -65504], '>f2'))
  halfBigEndian: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnPmYyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDMsKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAo8AEEA+/8=',
  ),
  // np.save(f, np.array([True, False]))
  booleans: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnfGIxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoBAA==',
  ),
  // np.save(f, np.zeros(2, [('a', '<f4'), ('b', '<f2', (2,))]))
  structured: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiBbKCdhJywgJzxmNCcpLCAoJ2InLCAnPGYyJywgKDIsKSldLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAAAAAAAAAAAAAAAA',
  ),
  // np.save(f, np.array([None, {}], dtype=object))
  objects: file(
    'k05VTVBZAQB2AHsnZGVzY3InOiAnfE8nLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAqABJWNAAAAAAAAAIwWbnVtcHkuX2NvcmUubXVsdGlhcnJheZSMDF9yZWNvbnN0cnVjdJSTlIwFbnVtcHmUjAduZGFycmF5lJOUSwCFlEMBYpSHlFKUKEsBSwKFlGgDjAVkdHlwZZSTlIwCTziUiYiHlFKUKEsDjAF8lE5OTkr/////Sv////9LP3SUYoldlChOfZRldJRiLg==',
  ),
  // np.savez(f, q=np.array([[1, 2], [3, 4]], '<f2'), k=np.array([5, 6, 7], '<f4'), empty=np.zeros((2, 0)))
  stored: file(
    'UEsDBC0AAAAAAAAAIQCsy0dI//////////8FABQAcS5ucHkBABAAiAAAAAAAAACIAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxmMicsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCAyKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAKADwAQABCAERQSwMELQAAAAAAAAAhAP4L6A7//////////wUAFABrLm5weQEAEACMAAAAAAAAAIwAAAAAAAAAk05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDMsKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAKBAAADAQAAA4EBQSwMELQAAAAAAAAAhAFdFvHP//////////wkAFABlbXB0eS5ucHkBABAAgAAAAAAAAACAAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxmOCcsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCAwKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAKUEsBAi0DLQAAAAAAAAAhAKzLR0iIAAAAiAAAAAUAAAAAAAAAAAAAAIABAAAAAHEubnB5UEsBAi0DLQAAAAAAAAAhAP4L6A6MAAAAjAAAAAUAAAAAAAAAAAAAAIABvwAAAGsubnB5UEsBAi0DLQAAAAAAAAAhAFdFvHOAAAAAgAAAAAkAAAAAAAAAAAAAAIABggEAAGVtcHR5Lm5weVBLBQYAAAAAAwADAJ0AAAA9AgAAAAA=',
  ),
  // np.savez_compressed(f, q=np.tile(np.arange(64, dtype='<f4'), 64).reshape(64, 64), k=np.asfortranarray(np.arange(6, dtype='<f8').reshape(2, 3)))
  deflated: file(
    'UEsDBC0AAAAIAAAAIQCtDWmO//////////8FABQAcS5ucHkBABAAgEAAAAAAAAAtAQAAAAAAAO3PoUtDURSA8SsYRAwLBoPhBeFNeGHhMUQGziFi0LGgoCC44d5YGG68DRFUWDQKFuOi0WhcNBqNi0aj0U//BJPhO9zvwD3t91A/OmiczIXLcB23s+F5Hm9GcaWTxkkUd/r5KG9dnPXzdvZz3231hhn3Ybc1yPgXy2kSldP1JLqN/jiL4XfGW6wqj8Y0oSnNKGyHUKCISlSlBjVpQGO6o3t6pAk90TO90JRe6Y3eaUYf9ElfFGohzNMCLVGBlmmFVimiNSpSQiVKaYMqVKUd2qN9atAhHdMpNalNXerRgEZ0RTc1/fr169evX79+/fr169evX79+/fr169evX79+/fr169evX79+/fr169evX79+/fr169evX79+/fr169evX79+/fr169ev/z/4vwFQSwMELQAAAAgAAAAhAOTIBmD//////////wUAFABrLm5weQEAEACwAAAAAAAAAFcAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWgbpNmoa6joJ6WX1RSlJgXn1+UkgoSDykqTQUKF2ckFqQCuRpGOgrGmjoKtQrkAy4GFMDhAKE/2ENoASifAUqLOAAAUEsBAi0DLQAAAAgAAAAhAK0NaY4tAQAAgEAAAAUAAAAAAAAAAAAAAIABAAAAAHEubnB5UEsBAi0DLQAAAAgAAAAhAOTIBmBXAAAAsAAAAAUAAAAAAAAAAAAAAIABZAEAAGsubnB5UEsFBgAAAAACAAIAZgAAAPIBAAAAAA==',
  ),
} as const;

/**
 * safetensors.numpy.save(tensors, {'scale': '0.125'}) of these, in this order:
 * v = [[1, 2], [3, 4]] float16, q = [1, 2, 3] bfloat16, é = [0.5] float32, a"⏎ = 2.5 float32 (scalar),
 * lse = [7] float64, k = [1, 2, 3] float8_e4m3fn, w = [1, 2] float8_e5m2, none = zeros (3, 0) float16.
 */
export const referenceSafetensors = file(
  '8AEAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJzY2FsZSI6IjAuMTI1In0sImxzZSI6eyJkdHlwZSI6IkY2NCIsInNoYXBlIjpbMV0sImRhdGFfb2Zmc2V0cyI6WzAsOF19LCJhXCJcbiI6eyJkdHlwZSI6IkYzMiIsInNoYXBlIjpbXSwiZGF0YV9vZmZzZXRzIjpbOCwxMl19LCLDqSI6eyJkdHlwZSI6IkYzMiIsInNoYXBlIjpbMV0sImRhdGFfb2Zmc2V0cyI6WzEyLDE2XX0sInEiOnsiZHR5cGUiOiJCRjE2Iiwic2hhcGUiOlszXSwiZGF0YV9vZmZzZXRzIjpbMTYsMjJdfSwibm9uZSI6eyJkdHlwZSI6IkYxNiIsInNoYXBlIjpbMywwXSwiZGF0YV9vZmZzZXRzIjpbMjIsMjJdfSwidiI6eyJkdHlwZSI6IkYxNiIsInNoYXBlIjpbMiwyXSwiZGF0YV9vZmZzZXRzIjpbMjIsMzBdfSwiayI6eyJkdHlwZSI6IkY4X0U0TTMiLCJzaGFwZSI6WzNdLCJkYXRhX29mZnNldHMiOlszMCwzM119LCJ3Ijp7ImR0eXBlIjoiRjhfRTVNMiIsInNoYXBlIjpbMl0sImRhdGFfb2Zmc2V0cyI6WzMzLDM1XX19ICAgAAAAAAAAHEAAACBAAAAAP4A/AEBAQAA8AEAAQgBEOEBEPEA=',
);
