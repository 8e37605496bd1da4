addEventListener("click",e=>{
if(e.defaultPrevented||e.button||e.metaKey||e.ctrlKey||e.shiftKey||e.altKey)return;
const a=e.composedPath().find(n=>n.localName==="a"&&n.hasAttribute("href"));
if(!a||a.getAttribute("href")[0]!=="#"||!/^(_self)?$/i.test(a.getAttribute("target")||""))return;
e.preventDefault();location.hash=a.getAttribute("href")
})
