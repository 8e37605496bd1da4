(()=>{
let over;
const ended=({reload,message}={})=>{
if(over||!/^https?:/.test(reload))return;
over=true;
if(!dispatchEvent(new CustomEvent("viewended",{cancelable:true,detail:{reload,message}})))return;
const bar=document.createElement("div"),a=document.createElement("a");
bar.setAttribute("role","alert");
bar.style.cssText="position:fixed;left:0;right:0;bottom:0;z-index:2147483647;padding:12px 16px;background:#222;color:#fff;font:14px/1.4 sans-serif";
a.href=reload+location.hash;a.textContent="Open again";a.style.color="#fff";
a.onclick=e=>{if(location.hash&&location.href.split("#")[0]===reload){e.preventDefault();location.reload()}};
bar.append(message+" ",a);document.documentElement.append(bar)
};
const fetch=window.fetch,{send}=XMLHttpRequest.prototype;
window.fetch=async(...args)=>{
const r=await fetch.apply(window,args);
if(r.status===401)r.clone().json().then(ended,()=>{});
return r
};
XMLHttpRequest.prototype.send=function(...args){
this.addEventListener("load",()=>{
if(this.status===401)try{ended(this.responseType==="json"?this.response:JSON.parse(this.responseText))}catch{}
});
return send.apply(this,args)
}
})();
