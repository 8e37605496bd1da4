import "./style.css"
import dot from "./dot.svg?no-inline"

const done = {}
const set = async (key, f) => {
  try {
    done[key] = String(await f())
  } catch (e) {
    done[key] = "failed: " + e.name
  }
}
const status = async url => (await fetch(url)).status

await set("later", async () => (await import("./later.js")).default)
await set("late style", () => getComputedStyle(document.querySelector("a")).color)
await set("font", async () => (await document.fonts.load("16px VT323")).map(f => f.status))
await set("style", () => getComputedStyle(document.querySelector("p")).color)
await set("image", () => new Promise((ok, no) => {
  const image = new Image()
  image.onload = () => ok(image.naturalWidth)
  image.onerror = no
  image.src = dot
}))
await set("user", () => informer.user.username)
await set("call", async () => (await (await fetch("api/colors")).json()).total)
await set("address", () => status(informer.api + "colors"))
await set("refused", () => status(informer.api + "users"))
await set("hash", () => new Promise(ok => {
  addEventListener("hashchange", () => ok(location.hash))
  document.querySelector("a").click()
}))
await set("storage", () => localStorage.visits = Number(localStorage.visits || 0) + 1)
await set("cookie", () => {
  document.cookie = "theme=dark; path=/"
  return document.cookie
})
if (self.origin !== "null") { // in a sandbox some browsers allow it
  await set("history", () => {
    history.pushState({}, "", informer.base + "orders/5?x=1")
    return location.pathname + location.search
  })
}
window.done = done
