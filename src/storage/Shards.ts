/** Shards of endpoints: what the workers on one database share among themselves. */

/** How many shards there are: an endpoint's is `uuid_hash(id) & 31`. */
export const shardCount = 32

/** A set of shards: bit n stands for shard n. A whole number of 32 bits, as PostgreSQL's `int`. */
export type Shards = number

/** All shards. */
export const allShards: Shards = -1

/** How many shards a set has. */
export const sizeOf = (shards: Shards): number => {
  let size = 0
  for (let rest = shards; rest !== 0; rest &= rest - 1) size += 1
  return size
}
