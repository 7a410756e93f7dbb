/** The paths of the API: what takes a key or a session. Not the tool server and the service's own pages. */
const apiPath = /^\/(?:v2|identity)\//

/** Whether a path, without its query, is the API's. */
export const isApiPath = (path: string): boolean => apiPath.test(path)
